"""Bookmarks: up to which version a consumer has read a table. Clean-ups keep it until they expire."""
