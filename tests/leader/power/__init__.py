"""The power cycle, on virtual hosts with a virtual operator."""
