"""What `pp-hostd simulate` does; pp_hostd/simulate_command.py has its arguments and help."""
