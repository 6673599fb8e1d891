// SPDX-License-Identifier: Apache-2.0

package database

import "github.com/capstan-dev/capstan/function/database/encoding"

// changeHash names what is to be done to members that serve: what they are to run, how many remain, and without either, which of
// them is to be relieved of the lead, or what they are upgraded to.
func (s *cluster) changeHash(target string, sit situation, m *move) string {
	key, value := "", ""
	switch {
	case m != nil && m.own && len(sit.outdated()) == 0 && len(sit.surplus()) == 0:
		key, value = "switchover", m.id
	case s.upgradeNext(sit):
		key, value = "upgrade", s.memory.Step.ID
	}
	return changePrefix + s.hashOf(target, key, value)
}

// hashOf what members are to run, how many there are, and what else is done, if anything.
func (s *cluster) hashOf(target, key, value string) string {
	e := map[string]any{"revision": target, "replicas": s.spec.Replicas}
	if key != "" {
		e[key] = value
	}
	return encoding.Hash(e)
}

// changePrefix keeps YAML from taking a hash for a number.
const changePrefix = "c"
