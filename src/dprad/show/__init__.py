"""What people see: words, figures, reports, scenario files, the command line and the page."""
