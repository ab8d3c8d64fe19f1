"""What every layer stands on: the compiler, files, strangers' data, threads, the machine."""
