"""What runs the pure packages: steps, options, records, the trainer, parallel work."""
