"""The source code in an archive: texts, debug records, an index of declarations, and names of classes."""
