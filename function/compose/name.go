// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the longest name that a Service, a label value or a host name may have. Other kinds allow more; one bound for all
// keeps names alike.
const maxName = 63

// hashLength is the number of hexadecimal digits of a Hash. 40 bits are enough among the objects of one namespace.
const hashLength = 10

// Name joins a base and its suffixes by "-" into a name of at most 63 characters. A base that leaves no room is cut and gets a
// hash of the whole, so that two long names differ even when they begin alike. The suffixes stay readable.
func Name(base string, suffixes ...string) string {
	suffix := ""
	if len(suffixes) > 0 {
		suffix = "-" + strings.Join(suffixes, "-")
	}
	whole := base + suffix
	if len(whole) <= maxName {
		return whole
	}
	hash := "-" + Hash([]byte(whole))
	room := maxName - len(hash) - len(suffix)
	if room < 1 {
		base, suffix, room = whole, "", maxName-len(hash)
	}
	return strings.TrimRight(base[:min(room, len(base))], "-.") + hash + suffix
}

// Hash names content: 10 hexadecimal digits that are the same for the same bytes.
func Hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])[:hashLength]
}
