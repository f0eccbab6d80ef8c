"""What a .blend file stores."""
