package record

import "bytes"

// beforeMark follows a digest that is stored as it was before it took the payload's length in.
const beforeMark = 'b'

// StoredBefore is how a store without such jobs of its own keeps the [JobSpec.DigestBefore] of one that comes from another
// store: with a byte more, so that it is taken for no other digest.
func StoredBefore(digest []byte) []byte { return append(bytes.Clone(digest), beforeMark) }

// SetDigest sets the digest of a job from what is stored: a [JobSpec.Digest], or what [StoredBefore] has made.
func (j *JobSpec) SetDigest(stored []byte) {
	if len(stored) == len(j.DigestBefore)+1 {
		copy(j.DigestBefore[:], stored)
		return
	}
	copy(j.Digest[:], stored)
}

// HasDigest reports whether the job is the one whose digest is stored.
func (j *JobSpec) HasDigest(stored []byte) bool {
	if len(stored) == len(j.DigestBefore)+1 {
		return bytes.Equal(stored, StoredBefore(j.DigestBefore[:]))
	}
	return bytes.Equal(stored, j.Digest[:])
}
