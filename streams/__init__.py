"""How does an event become the next snapshot?"""
