// SPDX-License-Identifier: Apache-2.0

// Package ui takes the place of Alertmanager's package of that name: its module does not have the pages that it serves.
package ui

import "github.com/prometheus/common/route"

// Register nothing: this build has no pages.
func Register(*route.Router) {}
