"""Man pages and the shell's completion, made from the commands' own parsers and the table of settings.

`python -m pp_hostd.manual DIRECTORY` writes them into a directory, for packages.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator

from pp_hostd import __version__
from pp_hostd.cli import CONFIG_PATH, PLUGIN, PROGRAMS, parser_of
from pp_hostd.reference import by_table, toml_value

COBRA_DEFAULT = ":0"
"""The last line of an answer to kubectl's shell completion: files may follow, too."""
FILES = f"""\
.SH FILES
.TP
.I {CONFIG_PATH}
The settings, and over them those in
.IR /etc/pp-hostd/conf.d/*.toml .
.SH SEE ALSO
.BR pp-hostd (8),
.BR pp-leader (8),
.BR pp-hostd.toml (5),
.BR journalctl (1)
"""
COMPLETION = """\
# Completes the commands and options of @prog@ in bash.
_@name@() {
    local at=@prog@ word words
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$at $word" in
            @paths@) at="$at $word" ;;
        esac
    done
    case "$at" in
@words@
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _@name@ @prog@
"""


def commands(prog: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The program and each command of it, by what a person types: "pp-hostd gate open", "kubectl pp status"."""
    parser = parser_of(prog)
    yield from _below(parser.prog, parser)


def _below(path: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from _below(f"{path} {name}", child)


def page_of_program(prog: str) -> str:
    (_, program), *below = commands(prog)
    summary = str(program.description).partition(": ")[2].rstrip(".")
    text = _head(prog, 8) + f".SH NAME\n{_plain(prog)} \\- {_plain(summary)}\n"
    text += (
        f".SH SYNOPSIS\n.B {_plain(program.prog)}\n.I COMMAND\n[...]\n.SH DESCRIPTION\n{_plain(program.description)}\n"
    )
    text += ".SH COMMANDS\n" + "".join(_command(path, parser) for path, parser in below if not _is_branch(parser))
    return text + FILES


def page_of_settings() -> str:
    text = _head("pp-hostd.toml", 5)
    text += ".SH NAME\npp\\-hostd.toml \\- the settings of pp\\-hostd and pp\\-leader\n.SH DESCRIPTION\n"
    text += _plain("A TOML file; a setting that is not in it has its default. pp-hostd check-config finds mistakes.\n")
    for table, about, settings in by_table():
        text += f".SH [{table}]\n{_plain(about)}\n"
        for setting in settings:
            unit = f"{setting.unit}: " if setting.unit else ""
            text += f'.TP\n.BI {_plain(setting.name)} " = {_plain(toml_value(setting.default))}"\n'
            text += f"{_plain(setting.consequence)}\nAllowed: {_plain(unit)}{_plain(str(setting.allowed))}.\n"
    return text + FILES


def completion(prog: str) -> str:
    """Returns the script that bash sources when somebody first completes a word after the program's name."""
    everything = list(commands(prog))
    words = "\n".join(f'        "{path}") words="{" ".join(_words(parser))}" ;;' for path, parser in everything)
    paths = " | ".join(f'"{path}"' for path, _ in everything[1:])
    text = COMPLETION.replace("@paths@", paths).replace("@words@", words)
    return text.replace("@name@", prog.replace("-", "_")).replace("@prog@", prog)


def kubectl_completion() -> int:
    """The program kubectl_complete-pp, which kubectl asks for the words that may follow `kubectl pp ...`."""
    everything = dict(commands(PLUGIN))
    *before, begun = sys.argv[1:] or [""]
    at = parser_of(PLUGIN).prog
    for word in before:
        at = f"{at} {word}" if f"{at} {word}" in everything else at
    words = (word for word in _words(everything[at]) if word.startswith(begun))
    sys.stdout.write("".join(f"{word}\n" for word in (*words, COBRA_DEFAULT)))
    return 0


def _head(name: str, section: int) -> str:
    return f'.TH {name.upper()} {section} "" "pp\\-hostd {__version__}" "pp\\-hostd"\n'


def _command(path: str, parser: argparse.ArgumentParser) -> str:
    usage = " ".join(parser.format_usage().split()[1:])
    text = f".SS {_plain(path)}\n.I {_plain(usage)}\n.PP\n{_plain(parser.description)}\n{_plain(parser.epilog)}\n"
    for action in parser._actions:
        if action.help and action.help != argparse.SUPPRESS and "--help" not in action.option_strings:
            names = ", ".join(action.option_strings) or str(action.metavar)
            value = f" {action.metavar}" if action.option_strings and action.metavar else ""
            shown = action.help % {**vars(action), "prog": parser.prog}
            text += f".TP\n.B {_plain(names + value)}\n{_plain(shown)}\n"
    return text


def _is_branch(parser: argparse.ArgumentParser) -> bool:
    return any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)


def _words(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        yield from action.option_strings
        yield from map(str, action.choices or () if not action.option_strings else ())


def _plain(text: str | None) -> str:
    """Text in which roff finds nothing to obey."""
    escaped = (text or "").replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")
    return re.sub(r"^(?=\.)", r"\\&", escaped, flags=re.MULTILINE)


def main(directory: str) -> None:
    os.makedirs(directory, exist_ok=True)
    texts = {"pp-hostd.toml.5": page_of_settings()}
    for prog in PROGRAMS:
        texts[f"{prog}.8"] = page_of_program(prog)
        if prog != PLUGIN:  # which kubectl completes
            texts[f"{prog}.bash"] = completion(prog)
    for name, text in texts.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
