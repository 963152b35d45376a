"""Reports in the forms that readers want: text, JSON and JUnit XML."""
