// SPDX-License-Identifier: Apache-2.0

package gtid

import (
	"fmt"
	"math"
)

// A Builder collects transactions to a Set. The zero value has none.
type Builder struct{ of map[source][]interval }

// Add the transactions with numbers from first to last of a server or group, which may have a tag.
func (b *Builder) Add(server, tag string, first, last int64) error {
	if !servers.MatchString(server) || tag != "" && !tags.MatchString(tag) || first < 1 || last < first || last == math.MaxInt64 {
		return fmt.Errorf("cannot understand the transactions %q:%q:%d-%d", server, tag, first, last)
	}
	if b.of == nil {
		b.of = map[source][]interval{}
	}
	src := source{server, tag}
	all := b.of[src]
	if n := len(all); n > 0 && all[n-1].last+1 == first {
		all[n-1].last = last
		return nil
	}
	b.of[src] = append(all, interval{first, last})
	return nil
}

// Set of all that was added.
func (b *Builder) Set() Set {
	return Set{b.of}.Union(Set{})
}

// Last number of a server or group without a tag in the set; 0 if there is none.
func (s Set) Last(server string) int64 {
	all := s.of[source{server: server}]
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].last
}
