// The links of a plan: their loads, the cut that limits it, and what uses a chosen one.
import { NetworkDrawing } from "../drawings";
import type { Route } from "../hooks";
import { hrefOfLink, linkOf, UsesOfLink } from "../linkuses";
import type { Ends, Model } from "../model";
import { Bar, Empty, Facts } from "../parts";
import type { Reading } from "../reading";
import { counted } from "../words";

export function PlanLinks({ model, reading, route }: { model: Model; reading: Reading; route: Route }) {
  const used = model.links.filter(({ load }) => load > 0).length;
  const chosen = linkOf(model, route);
  const named = route.query.get("link");
  const choosing = { chosen, hrefOf: (link: Ends) => hrefOfLink(model, route, link) };
  return (
    <>
      <Facts of={[["Links used", <Bar value={used / Math.max(1, model.links.length)} label={`${used} of ${model.links.length}`} />], ["Busiest links", counted(model.links.filter(({ load }) => load > 0.999).length, "link")]]} />
      <NetworkDrawing model={model} choosing={choosing}>
        {chosen ? <UsesOfLink model={model} reading={reading} route={route} chosen={chosen} />
          : named ? <Empty>This network has no link <code>{named}</code>.</Empty>
          : <p class="hint">Choose a link, in the drawing or in the table, to see what uses it.</p>}
      </NetworkDrawing>
    </>
  );
}
