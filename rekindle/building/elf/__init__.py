"""Link objects that LLVM writes into ELF shared libraries, without a linker on the machine."""

from rekindle.building.elf.linker import link as link
from rekindle.building.elf.objects import LinkError as LinkError, ObjectFile as ObjectFile
