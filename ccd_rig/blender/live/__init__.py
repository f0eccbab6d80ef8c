"""Live preview: rigs follow their targets while these move; keys and channels do not change."""
