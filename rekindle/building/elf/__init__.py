"""Linker of the objects that LLVM emits to ELF shared libraries; no linker is needed on the machine."""

from rekindle.building.elf.linker import link as link
from rekindle.building.elf.objects import LinkError as LinkError, ObjectFile as ObjectFile
