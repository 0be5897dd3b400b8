// Translates a Butane source into an Ignition file, from standard input to standard output. A warning is a failure.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
)

func main() {
	source, err := io.ReadAll(os.Stdin)
	check(err)
	translated, report, err := config.TranslateBytes(source, common.TranslateBytesOptions{Pretty: true})
	fmt.Fprint(os.Stderr, report.String())
	check(err)
	if len(report.Entries) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%s\n", translated)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
