// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/database/engine"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

const gigabyte = int64(1) << 30

// huge is a server with huge pages.
func huge(page, amount int64, config map[string]string) engine.Server {
	return engine.Server{
		Version: "17", Image: inputv1alpha1.DatabaseVersion{Version: "17", Preload: preloaded}, Memory: 4 * gigabyte, SpecMemory: resource.MustParse("4Gi"),
		SpecStorage: resource.MustParse("50Gi"), Storage: 50 * gigabyte, Connections: 100, Config: config, HugePages: engine.HugePages{Page: page, Amount: amount},
	}
}

const (
	small = 2 * bytesMB
	large = gigabyte
)

// TestHugePages: a member with huge pages has parameters of its own, and all members share those of a server without.
func TestHugePages(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		in      engine.Server
		own     map[string]string
		buffers string
		cache   string
	}{
		"None": {"Without them the buffers are a quarter of the memory.", huge(0, 0, nil), nil, "1024MB", "3072MB"},
		"Set": {
			"Without them, what the spec says holds for all.", huge(0, 0, map[string]string{"shared_buffers": "2GB"}), nil, "2GB", "3072MB",
		},
		"Small": {
			"The buffers get what other shared memory leaves. A member that restarts before its pod has huge pages fits its memory.", huge(small, 8*gigabyte, nil),
			map[string]string{"huge_pages": "on", "huge_page_size": "2MB", "shared_buffers": "7930MB"},
			"1024MB", "11264MB",
		},
		"Large": {
			"Large pages are named, because the kernel's default is another size.", huge(large, 16*gigabyte, nil),
			map[string]string{"huge_pages": "on", "huge_page_size": "1GB", "shared_buffers": "15922MB"},
			"1024MB", "19456MB",
		},
		"Connections": {
			"Connections take shared memory.", huge(small, 8*gigabyte, map[string]string{"max_connections": "2000"}),
			map[string]string{"huge_pages": "on", "huge_page_size": "2MB", "shared_buffers": "7812MB"},
			"1024MB", "11264MB",
		},
		"Configured": {
			"What the spec says is for members with huge pages.", huge(small, 8*gigabyte, map[string]string{"shared_buffers": "6GB", "effective_cache_size": "9GB"}),
			map[string]string{"huge_pages": "on", "huge_page_size": "2MB", "shared_buffers": "6GB"},
			"1024MB", "9GB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.own, New().OwnParameters(tc.in)); diff != "" {
				t.Errorf("%s\nof its own: -want, +got:\n%s", tc.reason, diff)
			}
			shared := server(tc.in).parameters()
			want := map[string]string{"huge_pages": "off", "shared_buffers": tc.buffers, "effective_cache_size": tc.cache}
			got := map[string]string{}
			for name := range want {
				got[name] = shared[name]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nshared: -want, +got:\n%s", tc.reason, diff)
			}
			if _, there := shared["huge_page_size"]; there {
				t.Error("a size of pages is shared")
			}
		})
	}
}

// TestHugePagesFit: a server whose shared memory does not fit its huge pages would not start.
func TestHugePagesFit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		in     engine.Server
		want   []check.Problem
	}{
		"Fits":   {"What is computed fits.", huge(small, 256*bytesMB, nil), nil},
		"Larger": {"Buffers in huge pages are no part of the memory.", huge(small, 40*gigabyte, map[string]string{"shared_buffers": "38GB"}), nil},
		"WithoutPages": {"Without huge pages they are.", huge(0, 0, map[string]string{"shared_buffers": "38GB"}), []check.Problem{
			check.Invalid("spec.config.shared_buffers", "38GB", "must be at most half the memory of a member, which is 4Gi: lower it, or give members more memory"),
		}},
		"Buffers": {"Beside the buffers there is more.", huge(small, 8*gigabyte, map[string]string{"shared_buffers": "8GB"}), []check.Problem{
			check.Invalid("spec.resources.hugePages.amount", "8Gi", "with spec.config.shared_buffers of 8GB the server shares up to 8460Mi: raise it to at least 8460Mi, or lower spec.config.shared_buffers"),
		}},
		"WholePages": {"Pages are whole.", huge(large, 8*gigabyte, map[string]string{"shared_buffers": "8GB"}), []check.Problem{
			check.Invalid("spec.resources.hugePages.amount", "8Gi", "with spec.config.shared_buffers of 8GB the server shares up to 8460Mi: raise it to at least 9Gi, or lower spec.config.shared_buffers"),
		}},
		"Connections": {"Connections alone can be too many.", huge(small, 256*bytesMB, map[string]string{"max_connections": "10000"}), []check.Problem{
			check.Invalid("spec.resources.hugePages.amount", "256Mi", "with 10000 connections the server shares up to 823Mi with the least buffers, which are 128MB: raise it to at least 824Mi, or lower spec.config.max_connections"),
		}},
		"Locks": {"So can be what transactions may lock.", huge(small, 256*bytesMB, map[string]string{"max_locks_per_transaction": "10000"}), []check.Problem{
			check.Invalid("spec.resources.hugePages.amount", "256Mi", "with 100 connections the server shares up to 1165Mi with the least buffers, which are 128MB: raise it to at least 1166Mi, or lower spec.config.max_locks_per_transaction"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, New().CheckConfig(tc.in)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
