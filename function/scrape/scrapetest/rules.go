// SPDX-License-Identifier: Apache-2.0

// Package scrapetest has Prometheus apply what planners write about scraping.
package scrapetest

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/relabel"
)

// Rules as Prometheus applies them.
func Rules(written []monitoringv1.RelabelConfig) []*relabel.Config {
	configs := make([]*relabel.Config, 0, len(written))
	for _, r := range written {
		c := relabel.DefaultRelabelConfig
		c.NameValidationScheme, c.TargetLabel = model.UTF8Validation, r.TargetLabel
		if r.Replacement != nil {
			c.Replacement = *r.Replacement
		}
		if r.Action != "" {
			c.Action = relabel.Action(r.Action)
		}
		for _, source := range r.SourceLabels {
			c.SourceLabels = append(c.SourceLabels, model.LabelName(source))
		}
		if r.Regex != "" {
			c.Regex = relabel.MustNewRegexp(r.Regex)
		}
		configs = append(configs, &c)
	}
	return configs
}
