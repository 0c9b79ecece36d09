"""MOSAICrOWN deliverable D5.3, 2020."""
