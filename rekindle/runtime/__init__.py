"""Graph -> results: code, interpreter, plan, executor, profiling, futures."""
