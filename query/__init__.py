"""What does a snapshot know about this question?"""
