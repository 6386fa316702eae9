"""What is in the index at this moment, and how does it change?"""
