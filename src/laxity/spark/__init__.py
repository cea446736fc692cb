"""The engine: Spark moves rows as the deciders decided."""
