"""``nn.Module`` as programs see it: its types and constants, its submodules and hooks, and attributes made by
methods.

``script_modules`` compiles a module, ``module_types`` says what is known of it, ``module_values`` is ``self``
within its methods.
"""
