"""Tree <-> Graph: emitter, environment, sugared values, resolver, SSA conversion and exits."""
