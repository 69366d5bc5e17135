"""Tables of records: counted where they live, built in, or read for experiments."""
