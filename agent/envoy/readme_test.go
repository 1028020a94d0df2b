package envoy

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3" // a cluster's options
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// What the README tells an owner of Envoy to write is what Envoy reads: every
// field is known and valid, and the cluster is the one that the filter asks.
// Seen to catch: a field of the wrong name, a cluster of another name.
func TestTheReadmesEnvoyConfig(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```yaml envoy\n(.*?)^```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the README has no block marked yaml envoy")
	}
	var config map[string][]any
	if err := yaml.Unmarshal(block[1], &config); err != nil {
		t.Fatal(err)
	}
	var filter hcmv3.HttpFilter
	var cluster clusterv3.Cluster
	var limit routev3.RateLimit
	for key, m := range map[string]proto.Message{"http_filters": &filter, "clusters": &cluster, "rate_limits": &limit} {
		written, err := json.Marshal(config[key][0])
		if err == nil {
			err = protojson.Unmarshal(written, m)
		}
		if err == nil {
			err = m.(interface{ ValidateAll() error }).ValidateAll()
		}
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	var asks ratelimitfilterv3.RateLimit
	if err := filter.GetTypedConfig().UnmarshalTo(&asks); err != nil {
		t.Fatal(err)
	}
	if err := asks.ValidateAll(); err != nil {
		t.Error(err)
	}
	if got := asks.GetRateLimitService().GetGrpcService().GetEnvoyGrpc().GetClusterName(); got != cluster.GetName() {
		t.Errorf("the filter asks %q, the cluster is %q", got, cluster.GetName())
	}
}
