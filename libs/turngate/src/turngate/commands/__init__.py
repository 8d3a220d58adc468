"""The operator's command line, a module a group of verbs. Heavy imports are made where they are needed."""
