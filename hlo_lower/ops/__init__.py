"""What is known of each op by its definition: what is pure, which axes follow which, what targets take."""
