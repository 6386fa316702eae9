"""How are the parts put together and run?"""
