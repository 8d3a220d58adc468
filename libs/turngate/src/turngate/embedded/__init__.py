"""The system on one machine: real servers from wheels, the five services as processes, one supervisor over all."""
