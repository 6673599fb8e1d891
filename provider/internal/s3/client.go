// SPDX-License-Identifier: Apache-2.0

package s3

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/capstan-dev/capstan/internal/s3options"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// mainRegion is the one that AWS does not want to hear when a bucket is made, and that servers of other makes call theirs by
// default.
const mainRegion = "us-east-1"

// A Client of one S3 server, for all users of the same config.
type Client struct {
	// Region of buckets that name none.
	Region string

	// Workload is the key for users of buckets, or nil.
	Workload *outside.AccessKey

	// CABundle of the server, for users of buckets, or "" when everybody's will do.
	CABundle string

	// endpoint that the config names; "" is AWS.
	endpoint string

	api *s3.Client
}

// New client of the S3 server that a connection leads to. It sends each request once: the controller tries again, later each
// time.
func New(c *outside.Connection) (*Client, error) {
	o := s3.Options{
		Region:       c.S3.Region,
		Credentials:  credentials.NewStaticCredentialsProvider(c.Key.ID, c.Key.Secret, c.Key.Session),
		HTTPClient:   &suspicious{inner: c.HTTP},
		Retryer:      aws.NopRetryer{},
		UsePathStyle: c.S3.Endpoint != "",
		APIOptions:   []func(*middleware.Stack) error{nameOperation, addContentMD5},
	}
	if o.Region == "" {
		o.Region = mainRegion
	}
	if c.S3.Endpoint != "" {
		o.BaseEndpoint = aws.String(strings.TrimRight(c.S3.Endpoint, "/"))
	}
	if c.S3.PathStyle != nil {
		o.UsePathStyle = *c.S3.PathStyle
	}
	return &Client{Region: o.Region, Workload: c.Workload, CABundle: c.CABundle, endpoint: c.S3.Endpoint, api: s3.New(o, s3options.AnyMake)}, nil
}

// In a region.
func (c *Client) In(region string) *s3.Client {
	if region == c.Region {
		return c.api
	}
	return s3.New(c.api.Options(), func(o *s3.Options) { o.Region = region })
}

// Endpoint that clients of buckets in a region use.
func (c *Client) Endpoint(ctx context.Context, region string) (string, error) {
	if c.endpoint != "" {
		return c.endpoint, nil
	}
	e, err := s3.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, s3.EndpointParameters{
		Region:         aws.String(region),
		ForcePathStyle: aws.Bool(true),
	})
	if err != nil {
		return "", fmt.Errorf("cannot find the endpoint of region %q: %w", region, err)
	}
	return strings.TrimRight(e.URI.String(), "/"), nil
}

// Constraint is what a server learns about the region of a new bucket. AWS wants it for every region but its first. Others have
// but one region, know it by a name of their own and refuse another, so that they get only what the Bucket itself says, or
// "".
func (c *Client) Constraint(asked *string) string {
	region := c.Region
	if asked != nil {
		region = *asked
	}
	if region == mainRegion || asked == nil && !c.isAWS() {
		return ""
	}
	return region
}

// isAWS reports whether the config leads to AWS, directly or by a name of AWS.
func (c *Client) isAWS() bool {
	if c.endpoint == "" {
		return true
	}
	u, err := url.Parse(c.endpoint)
	if err != nil {
		return false
	}
	return strings.HasSuffix(u.Hostname(), ".amazonaws.com") || strings.HasSuffix(u.Hostname(), ".amazonaws.com.cn")
}

// nameOperation in metrics.
func nameOperation(s *middleware.Stack) error {
	return s.Initialize.Add(middleware.InitializeMiddlewareFunc("CapstanOperation", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		return next.HandleInitialize(outside.WithOperation(ctx, awsmiddleware.GetOperationName(ctx)), in)
	}), middleware.After)
}

// addContentMD5 to every request with a body: servers of other makes insist on it, as AWS did, where the SDK sends a newer
// checksum.
func addContentMD5(s *middleware.Stack) error { return smithyhttp.AddContentChecksumMiddleware(s) }
