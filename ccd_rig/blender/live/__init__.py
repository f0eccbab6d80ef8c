"""The rig follows its targets while they move: keys and channels stay as they are."""
