// SPDX-License-Identifier: Apache-2.0

// Package runbook links each alert to what to do about it.
package runbook

import "strings"

// Page has a heading for each alert of Capstan.
const Page = "https://github.com/capstan-dev/capstan/blob/main/docs/alerts.md"

// Annotation of an alert by which Alertmanager, Grafana and others show a link.
const Annotation = "runbook_url"

// URL of what to do about an alert: the heading of its name on a page.
func URL(page, alert string) string { return page + "#" + strings.ToLower(alert) }
