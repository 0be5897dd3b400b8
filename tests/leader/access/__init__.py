"""The tests of `pp-leader install` and of the access that it grants, on clusters of their own."""
