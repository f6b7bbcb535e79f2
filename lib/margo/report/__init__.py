"""What a run has to show, collected and rendered."""
