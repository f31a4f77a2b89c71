"""``nn.Module`` in programs: its types and constants, its submodules and hooks, and attributes assigned by methods.

``module_types`` is the data model of what is known of a module, and ``module_inference`` infers it. ``module_values``
has the sugared value of ``self`` within its methods, and ``script_modules`` compiles the module.
"""
