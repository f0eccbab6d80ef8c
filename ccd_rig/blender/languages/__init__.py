"""The interface in other languages: a catalogue per language, and the functions that look messages up."""
