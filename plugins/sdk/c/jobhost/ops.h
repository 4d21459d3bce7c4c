// What the calls that take messages share.

#pragma once
#include "memory.h"

// jh_put_field appends a line; false = it can't be one.
bool jh_put_field(jh_buffer *b, jh_bytes name, jh_bytes value);

// jh_child returns the number of a job, or an error, and its id if that is wanted.
int jh_child(int number, jh_bytes *id);
