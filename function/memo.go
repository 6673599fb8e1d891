// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"sync"

	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/input/v1alpha1"
)

// Bounds of a memo. An installation has one EnvironmentConfig and an input in each of a few Compositions.
const (
	maxMemories     = 16
	maxMemoryLength = 64 << 10
)

// A memo of settings by all that they are read from, so that they are read and checked once and not in every call. The zero value is
// one without memories.
type memo struct {
	mu    sync.Mutex
	known map[string]memory
}

type memory struct {
	settings v1alpha1.Settings
	err      error
}

// settingsOf the platform, as the function of that name. The result may be changed.
func (m *memo) settingsOf(req *edge.Request) (v1alpha1.Settings, error) {
	key, ok := sources(req)
	if !ok {
		return settingsOf(req)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, ok := m.known[key]
	if !ok {
		found.settings, found.err = settingsOf(req)
		if m.known == nil || len(m.known) >= maxMemories {
			m.known = map[string]memory{}
		}
		m.known[key] = found
	}
	return *found.settings.DeepCopy(), found.err
}

// sources of settings as text, in one order, unless they are too long to be remembered.
func sources(req *edge.Request) (string, bool) {
	all := make([]any, 1, 1+len(req.Required[requiredSettings]))
	if req.Input != nil {
		all[0] = req.Input.Map()
	}
	for _, item := range req.Required[requiredSettings] {
		all = append(all, item.Field("data"))
	}
	raw, err := json.Marshal(all)
	return string(raw), err == nil && len(raw) <= maxMemoryLength
}
