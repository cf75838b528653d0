"""What every room stands on: errors and their causes, arguments, the registry, child processes, drawings."""
