"""``nn.Module`` in programs: its types and constants, its submodules and hooks, and attributes assigned by methods.

``module_types`` says what is known of a module, ``module_inference`` finds it out, ``module_values`` is ``self`` within
its methods, ``script_modules`` compiles it.
"""
