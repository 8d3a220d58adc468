"""Records people's decisions on held calls, after checking their token itself."""
