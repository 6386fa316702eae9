"""What is connected with what, and where does a walk over it come to rest?"""
