"""Access to table locations: object stores, table files, manifests, and the only module that deletes data."""
