package translate_test

import (
	"time"

	"github.com/weirproxy/weir/controller/translate"
)

func envoyGatewayController() translate.Controller {
	return translate.Controller{Name: envoyGateway, Attachment: "envoy-gateway",
		RouteNames: translate.RouteNamesEnvoyGateway, HoldMargin: 500 * time.Millisecond}
}
