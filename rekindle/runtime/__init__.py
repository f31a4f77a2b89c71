"""Graph -> results: code, interpreter, plan, the pipelines as data, executor, profiling, futures."""
