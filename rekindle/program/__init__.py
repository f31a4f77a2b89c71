"""What a user holds: CompilationUnit, Function, Method, ScriptModule, script classes."""
