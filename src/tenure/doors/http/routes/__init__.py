"""What the API can be asked, a file a noun. Each route tells what it takes, what it answers and who may ask it."""
