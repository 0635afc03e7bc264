"""Waits for what happens to Lance tables."""
